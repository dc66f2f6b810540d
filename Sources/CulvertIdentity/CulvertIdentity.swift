// Module CulvertIdentity.
