"""Value engine on an accelerator: draws, model and moments stay there; only v(S) comes back."""
