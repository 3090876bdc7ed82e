"""Readers and writers of files; every error has its place."""
