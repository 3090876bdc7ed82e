"""Distributions over rankings: samples, exact exposure, and the policies that a run can be."""
