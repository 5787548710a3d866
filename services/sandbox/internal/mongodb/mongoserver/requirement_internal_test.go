package mongoserver

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// TestRequirement_EveryCommandSaysWhatItNeeds keeps a new command from being one that
// nobody may run.
func TestRequirement_EveryCommandSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, command := range newCommands(serverversion.Version{}) {
		if !command.Needs.Anybody && command.Needs.Privileges == nil {
			t.Errorf("command %s does not say in commands.go what a client needs to run it", name)
		}
	}
}
