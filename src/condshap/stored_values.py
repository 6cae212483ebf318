"""What approaches of your own need to store their options; see `condshap.storage.plain_values`."""

from condshap.storage.plain_values import restore_values, restored_options, store_values, stored_options

__all__ = ["restore_values", "restored_options", "store_values", "stored_options"]
