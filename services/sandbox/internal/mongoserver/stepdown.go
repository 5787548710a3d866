package mongoserver

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// stepDownPeriod is how long a member that has stepped down does not stand for
// election, by default.
const stepDownPeriod = 60 * time.Second

// replSetStepDown makes the primary a secondary for a while
// (https://www.mongodb.com/docs/v4.4/reference/command/replSetStepDown/).
func replSetStepDown(ctx context.Context, c *call, _ *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	period, catchUp, force := stepDownPeriod, time.Duration(0), false
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			period = a.seconds(name, v)
		case "secondaryCatchUpPeriodSecs":
			catchUp = a.seconds(name, v)
		case "force":
			force = a.truth(name, v)
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	if catchUp > period {
		a.fail(mongoerr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	if a.err != nil {
		return a.err
	}
	if !c.server.election.now().primary {
		return errNotPrimary()
	}
	if !force {
		return mongoerr.New(mongoerr.ExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the replSetStepDown "+
			"command with the argument {force: true} to force node to step down.", c.now.UTC().Format(time.RFC3339))
	}
	return c.server.election.stepDown(ctx, period)
}

// seconds is a time that is not negative.
func (a *arguments) seconds(name string, v bson.RawValue) time.Duration {
	if v.Type == bson.TypeBoolean && name == "replSetStepDown" {
		return stepDownPeriod
	}
	return time.Duration(min(a.count(name, v), maxPeriodSeconds)) * time.Second
}

// maxPeriodSeconds is a year.
const maxPeriodSeconds = 365 * 24 * 3600

// replSetFreeze keeps a secondary from standing for election for a time; with 0
// it stands at once, as the only member of a set does
// (https://www.mongodb.com/docs/v4.4/reference/command/replSetFreeze/).
func replSetFreeze(_ context.Context, c *call, _ *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	first, _ := c.body.IndexErr(0)
	period := a.seconds(c.name, first.Value())
	if a.err != nil {
		return a.err
	}
	return c.server.election.freeze(period)
}

// replSetStepUp elects the member at once.
func replSetStepUp(_ context.Context, c *call, _ *reply) error {
	c.server.election.stepUp()
	return nil
}
