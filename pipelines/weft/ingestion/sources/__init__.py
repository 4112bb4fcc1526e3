"""What can be read: folders, files, corpora, tables, transcripts."""
