"""How runs are shown: exports, tables, pages, the viewer and the command line."""
