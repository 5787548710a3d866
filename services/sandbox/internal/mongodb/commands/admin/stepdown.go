package admin

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/election"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// stepDownPeriod is how long a member that has stepped down does not stand for
// election, by default.
const stepDownPeriod = 60 * time.Second

// replSetStepDown makes the primary a secondary for a while
// (https://www.mongodb.com/docs/v4.4/reference/command/replSetStepDown/).
func replSetStepDown(ctx context.Context, c *command.Call, _ *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	period, catchUp, force := stepDownPeriod, time.Duration(0), false
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			period = seconds(&a, name, v)
		case "secondaryCatchUpPeriodSecs":
			catchUp = seconds(&a, name, v)
		case "force":
			force = a.Truth(name, v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	if catchUp > period {
		a.Fail(mongoerr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	if a.Err != nil {
		return a.Err
	}
	if !c.Server.Election.Now().Primary {
		return election.ErrNotPrimary()
	}
	if !force {
		return mongoerr.New(mongoerr.ExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the replSetStepDown "+
			"command with the argument {force: true} to force node to step down.", c.Now.UTC().Format(time.RFC3339))
	}
	return c.Server.Election.StepDown(ctx, period)
}

// seconds is a time that is not negative.
func seconds(a *command.Arguments, name string, v bson.RawValue) time.Duration {
	if v.Type == bson.TypeBoolean && name == "replSetStepDown" {
		return stepDownPeriod
	}
	return time.Duration(min(a.Count(name, v), maxPeriodSeconds)) * time.Second
}

// maxPeriodSeconds is a year.
const maxPeriodSeconds = 365 * 24 * 3600

// replSetFreeze keeps a secondary from standing for election for a time; with 0
// it stands at once, as the only member of a set does
// (https://www.mongodb.com/docs/v4.4/reference/command/replSetFreeze/).
func replSetFreeze(_ context.Context, c *command.Call, _ *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first, _ := c.Body.IndexErr(0)
	period := seconds(&a, c.Name, first.Value())
	if a.Err != nil {
		return a.Err
	}
	return c.Server.Election.Freeze(period)
}

// replSetStepUp elects the member at once.
func replSetStepUp(_ context.Context, c *command.Call, _ *command.Reply) error {
	c.Server.Election.StepUp()
	return nil
}
