// Module CulvertIO.
