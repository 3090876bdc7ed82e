"""Programs that generate files of the repository; no part of the installed package."""
