"""At home in other libraries: the measures from ir-measures, and so from PyTerrier; scoring on a Dask cluster.

Nothing is imported here: `import fairevals` comes through, and has to stay light.
"""
