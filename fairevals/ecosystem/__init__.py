"""Use with other libraries: ir-measures (and so PyTerrier), and scoring on a Dask cluster.

`import fairevals` imports this package, so it must not import anything itself.
"""
