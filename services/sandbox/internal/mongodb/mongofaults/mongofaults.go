// Package mongofaults describes the MongoDB side's faults to whoever starts
// them by name. The mechanisms are those of the server.
package mongofaults

import (
	"errors"
	"time"

	"changerelay/services/sandbox/internal/faults"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// befalls says which commands a fault is for.
type befalls struct {
	Commands []string `json:"commands"`
	AppName  string   `json:"app_name"`
	Times    int64    `json:"times"`
}

func (b befalls) fault() (command.Fault, error) {
	if b.Times < 0 {
		return command.Fault{}, errors.New("times is negative")
	}
	return command.Fault{Commands: b.Commands, AppName: b.AppName, Times: b.Times}, nil
}

// Kinds are the faults of a server.
func Kinds(s *command.Server) []faults.Kind {
	return []faults.Kind{
		faults.NewKind("mongodb.cut",
			"Resets every connection, as a failing network does.",
			`{"kind":"mongodb.cut"}`,
			func(struct{}) (faults.Effect, error) { return faults.Effect{Affected: s.Cut()}, nil }),
		faults.NewKind("mongodb.close",
			"Closes the connection instead of an answer to the named commands.",
			`{"kind":"mongodb.close","commands":["getMore"],"times":1}`,
			func(b befalls) (faults.Effect, error) {
				if len(b.Commands) == 0 {
					return faults.Effect{}, errors.New("commands is empty")
				}
				f, err := b.fault()
				f.Close = true
				return start(s, f, err)
			}),
		fail(s),
		delay(s),
	}
}

func fail(s *command.Server) faults.Kind {
	type fields struct {
		befalls
		Code int32 `json:"code"`
	}
	return faults.NewKind("mongodb.fail",
		"Answers the named commands with an error, with the labels that the server gives it.",
		`{"kind":"mongodb.fail","commands":["insert","findAndModify"],"code":189,"for":"10s"}`,
		func(b fields) (faults.Effect, error) {
			if len(b.Commands) == 0 || b.Code <= 0 {
				return faults.Effect{}, errors.New("commands is empty, or code is not positive")
			}
			f, err := b.fault()
			f.Code = mongoerr.Code(b.Code)
			return start(s, f, err)
		})
}

func delay(s *command.Server) faults.Kind {
	type fields struct {
		befalls
		Delay faults.Duration `json:"delay"`
	}
	return faults.NewKind("mongodb.delay",
		"Makes the named commands, or all, take longer.",
		`{"kind":"mongodb.delay","commands":["find"],"delay":"200ms","for":"30s"}`,
		func(b fields) (faults.Effect, error) {
			f, err := b.fault()
			f.Delay = time.Duration(b.Delay)
			return start(s, f, err)
		})
}

func start(s *command.Server, f command.Fault, err error) (faults.Effect, error) {
	if err != nil {
		return faults.Effect{}, err
	}
	end, err := s.StartFault(f)
	return faults.Effect{End: end}, err
}
