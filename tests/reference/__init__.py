"""Oracles: the shortest obvious implementation of each algorithm, slow on purpose."""
