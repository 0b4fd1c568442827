"""What tests share: golden files, servers on loopback, fakes."""
