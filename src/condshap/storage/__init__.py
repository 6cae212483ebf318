"""Explainers, explanations and networks <-> files: sealed, written at once or not at all, without pickle.

::

    what a user keeps        explainers, explanations, networks
    what these are made of   plain_values (options), tables, schemas, dtypes (and labels, and single values)
    the file itself          state_file (arrays and facts in one safetensors file), file_kinds (header, version, damage),
                             sealing (checksum), writing (the only code that writes)
"""
