"""The viewer: a local page that shows runs, their episodes and every decision in them.

It only reads run files, also while they grow; what it works out lies in the user's cache folder.
"""
