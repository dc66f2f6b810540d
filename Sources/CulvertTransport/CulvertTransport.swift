// Module CulvertTransport.
