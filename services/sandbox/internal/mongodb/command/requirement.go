package command

import "changerelay/services/sandbox/internal/mongodb/access"

// Requirement says what a client must be granted to run a command, where the
// server asks for authentication. The zero requirement lets nobody run it.
type Requirement struct {
	// Anybody may run it, without having said who they are.
	Anybody bool
	// Privileges are those that the command needs with its arguments; none is
	// enough for every user.
	Privileges func(*Call) []access.Privilege
}

// Anybody needs no authentication.
func Anybody() Requirement { return Requirement{Anybody: true} }

// AnyUser needs authentication and no privilege.
func AnyUser() Requirement {
	return Requirement{Privileges: func(*Call) []access.Privilege { return nil }}
}

// OnCluster needs actions on the deployment.
func OnCluster(actions ...access.Action) Requirement {
	return Requirement{Privileges: func(*Call) []access.Privilege {
		return []access.Privilege{{Resource: access.Cluster(), Actions: actions}}
	}}
}

// OnDatabase needs actions on the command's database.
func OnDatabase(actions ...access.Action) Requirement {
	return Requirement{Privileges: func(c *Call) []access.Privilege {
		return []access.Privilege{{Resource: access.Database(c.DB), Actions: actions}}
	}}
}

// OnCollection needs actions on the collection in the command's first field.
func OnCollection(actions ...access.Action) Requirement {
	return Requirement{Privileges: func(c *Call) []access.Privilege { return c.OnOwnCollection(actions...) }}
}

// ByArguments gives what the command needs by its arguments.
func ByArguments(privileges func(*Call) []access.Privilege) Requirement {
	return Requirement{Privileges: privileges}
}

// OnOwnCollection are actions on the collection in the first field; on the
// database, which more is needed for, where that is none.
func (c *Call) OnOwnCollection(actions ...access.Action) []access.Privilege {
	first, _ := c.Body.IndexErr(0)
	name, _ := first.Value().StringValueOK()
	return []access.Privilege{{Resource: access.Collection(c.DB, name), Actions: actions}}
}
