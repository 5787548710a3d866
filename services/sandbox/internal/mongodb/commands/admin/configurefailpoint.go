package admin

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

func configureFailPoint(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	rule := &command.FailRule{}
	var point *command.FailPoint
	var data bson.Raw
	off := false
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			if point = c.Server.FailPoints.Named(a.Text(name, v)); point == nil {
				a.Fail(mongoerr.FailPointSetFailed, "%s not found", v)
			}
		case "mode":
			off = failMode(&a, rule, v)
		case "data":
			data = a.Document(name, v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "configureFailPoint", name)
			}
		}
	}
	switch point {
	case &c.Server.FailPoints.Command:
		failCommandData(&a, rule, data, c.Server.Version)
	case &c.Server.FailPoints.GetMore:
		failGetMoreData(&a, rule, data)
	case &c.Server.FailPoints.TransactionalWrite:
		failWriteData(&a, rule, data)
	case &c.Server.FailPoints.MaxTime:
		rule.Fault.ErrorCode = mongoerr.MaxTimeMSExpired
		if len(data) > len(bsonkit.Empty) {
			a.Fail(mongoerr.BadValue, "maxTimeAlwaysTimeOut with data is not supported")
		}
	}
	if a.Err != nil {
		return a.Err
	}
	if off {
		rule = nil
	}
	r.Int32("count", int32(point.Set(rule)))
	return nil
}

// failGetMoreData reads the data of failGetMoreAfterCursorCheckout.
func failGetMoreData(a *command.Arguments, rule *command.FailRule, data bson.Raw) {
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "errorCode":
			rule.Fault.ErrorCode = mongoerr.Code(a.Integer(name, v))
		case "closeConnection":
			rule.Fault.CloseConnection = a.Boolean(name, v)
		default:
			a.Fail(mongoerr.BadValue, "failGetMoreAfterCursorCheckout with %s is not supported", name)
		}
	}
}

// failWriteData reads the data of onPrimaryTransactionalWrite: unless told
// otherwise it closes the connection.
func failWriteData(a *command.Arguments, rule *command.FailRule, data bson.Raw) {
	rule.Fault.CloseConnection = true
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "failBeforeCommitExceptionCode":
			rule.Fault.ErrorCode = mongoerr.Code(a.Integer(name, v))
		case "closeConnection":
			rule.Fault.CloseConnection = a.Boolean(name, v)
		default:
			a.Fail(mongoerr.BadValue, "onPrimaryTransactionalWrite with %s is not supported", name)
		}
	}
}

func failMode(a *command.Arguments, rule *command.FailRule, v bson.RawValue) (off bool) {
	rule.Times = -1
	if mode, ok := v.StringValueOK(); ok {
		switch mode {
		case "off":
			return true
		case "alwaysOn":
		default:
			a.Fail(mongoerr.BadValue, "unknown mode: %s", mode)
		}
		return false
	}
	for it := bsonkit.Iterate(a.Document("mode", v)); it.Next(); {
		switch name := string(it.Key()); name {
		case "times":
			rule.Times = a.Count(name, it.Value())
		case "skip":
			rule.Skip = a.Count(name, it.Value())
		default:
			a.Fail(mongoerr.BadValue, "fail point mode %s is not supported", name)
		}
	}
	return false
}

// failCommandData reads the data of failCommand: without failCommands none fails.
func failCommandData(a *command.Arguments, rule *command.FailRule, data bson.Raw, version serverversion.Version) {
	rule.Commands = []string{}
	all := false
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "failCommands":
			for _, element := range a.Array(name, v) {
				rule.Commands = append(rule.Commands, a.Text(name, element))
			}
		case "appName":
			rule.AppName = a.Text(name, v)
		case "closeConnection":
			rule.Fault.CloseConnection = a.Boolean(name, v)
		case "errorCode":
			rule.Fault.ErrorCode = mongoerr.Code(a.Integer(name, v))
		case "errorLabels":
			rule.Fault.HasLabels = true
			for _, element := range a.Array(name, v) {
				rule.Fault.Labels = append(rule.Fault.Labels, a.Text(name, element))
			}
		case "blockConnection":
			rule.Block = a.Boolean(name, v)
		case "blockTimeMS":
			rule.Fault.Block = time.Duration(a.Count(name, v)) * time.Millisecond
		case "writeConcernError":
			rule.Fault.WriteConcernError = a.Document(name, v)
		case "failAllCommands":
			all = version.Has(6) // those before do not know it
		case "namespace":
			rule.Namespace = a.Text(name, v)
		case "failInternalCommands", "threadName", "extraInfo":
			// All clients of the sandbox are external ones.
		default:
			a.Fail(mongoerr.BadValue, "failCommand with %s is not supported", name)
		}
	}
	if all {
		rule.Commands = nil
	}
	if !rule.Block {
		rule.Fault.Block = 0
	}
}
