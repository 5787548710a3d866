package mongoserver

import "testing"

// TestEveryCommandSaysWhatItNeeds keeps a new command from being one that
// nobody may run.
func TestEveryCommandSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, command := range newCommands() {
		if !command.needs.anybody && command.needs.privileges == nil {
			t.Errorf("command %s does not say in commands.go what a client needs to run it", name)
		}
	}
}
