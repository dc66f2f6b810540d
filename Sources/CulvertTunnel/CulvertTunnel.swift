// Module CulvertTunnel.
