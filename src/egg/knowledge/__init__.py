"""What experts know: principles as files, their loader and the matcher from facts to principles."""
