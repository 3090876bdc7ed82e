"""Experiments of the papers, done again; see the Makefile for a target each."""
