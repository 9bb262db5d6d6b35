"""What any page shows: sources, tables, figures, players, stored records, and Python in pages."""
