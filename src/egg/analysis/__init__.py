"""Task and device in; operator graph, costs, bound and facts out."""
