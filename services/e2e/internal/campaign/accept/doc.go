// Package accept tries the relay on servers of one's own: adapter tests and a demo with
// faults of the services, none of the servers. It uses databases of its own and removes
// them, and writes a report that holds no secret.
package accept
