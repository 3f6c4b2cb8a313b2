"""Statistics of episodes: intervals, comparisons, ratings, reliability; see docs/statistics.md.

Pure functions of arrays. An episode is the unit: rounds and seats of one are not independent and
are averaged first.
"""
