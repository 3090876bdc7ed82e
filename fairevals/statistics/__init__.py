"""Statistics over topics: is one run better than another, by how much, and how sure is that."""
