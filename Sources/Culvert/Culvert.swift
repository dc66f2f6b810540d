// Module Culvert.
