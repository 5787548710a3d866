package admin

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/command"
)

func ping(context.Context, *command.Call, *command.Reply) error { return nil }
