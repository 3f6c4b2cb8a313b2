"""Rules written once, in NumPy, traced on stand-ins for arrays and written out as plain code."""
