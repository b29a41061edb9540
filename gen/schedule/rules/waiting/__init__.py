"""Rules for iterations that wait for one another: several such, which do not, run at once."""
