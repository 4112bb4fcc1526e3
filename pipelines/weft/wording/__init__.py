"""One comparer of short texts: lessons, contents that lie near each other, and questions."""
