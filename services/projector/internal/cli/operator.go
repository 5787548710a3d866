package cli

import (
	"os"
	"os/user"
)

// Operator is who runs a command, user and host, as far as the system knows.
func Operator() string {
	name := "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
