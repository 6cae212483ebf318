"""Tables of any library -> columns, and back."""
