package mongoserver

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

func configureFailPoint(_ context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	rule := &failRule{}
	var point *failPoint
	var data bson.Raw
	off := false
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			if point = c.server.failPoints.named(a.text(name, v)); point == nil {
				a.fail(mongoerr.FailPointSetFailed, "%s not found", v)
			}
		case "mode":
			off = a.failMode(rule, v)
		case "data":
			data = a.document(name, v)
		default:
			if !isGeneric(name) {
				a.unknown(40415, "configureFailPoint", name)
			}
		}
	}
	switch point {
	case &c.server.failPoints.command:
		a.failCommandData(rule, data)
	case &c.server.failPoints.getMore:
		a.failGetMoreData(rule, data)
	case &c.server.failPoints.transactionalWrite:
		a.failWriteData(rule, data)
	}
	if a.err != nil {
		return a.err
	}
	if off {
		rule = nil
	}
	r.int32("count", int32(point.set(rule)))
	return nil
}

// failGetMoreData reads the data of failGetMoreAfterCursorCheckout.
func (a *arguments) failGetMoreData(rule *failRule, data bson.Raw) {
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "errorCode":
			rule.fault.errorCode = mongoerr.Code(a.integer(name, v))
		case "closeConnection":
			rule.fault.closeConnection = a.boolean(name, v)
		default:
			a.fail(mongoerr.BadValue, "failGetMoreAfterCursorCheckout with %s is not supported", name)
		}
	}
}

// failWriteData reads the data of onPrimaryTransactionalWrite: unless told
// otherwise it closes the connection.
func (a *arguments) failWriteData(rule *failRule, data bson.Raw) {
	rule.fault.closeConnection = true
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "failBeforeCommitExceptionCode":
			rule.fault.errorCode = mongoerr.Code(a.integer(name, v))
		case "closeConnection":
			rule.fault.closeConnection = a.boolean(name, v)
		default:
			a.fail(mongoerr.BadValue, "onPrimaryTransactionalWrite with %s is not supported", name)
		}
	}
}

func (a *arguments) failMode(rule *failRule, v bson.RawValue) (off bool) {
	rule.times = -1
	if mode, ok := v.StringValueOK(); ok {
		switch mode {
		case "off":
			return true
		case "alwaysOn":
		default:
			a.fail(mongoerr.BadValue, "unknown mode: %s", mode)
		}
		return false
	}
	for it := bsonkit.Iterate(a.document("mode", v)); it.Next(); {
		switch name := string(it.Key()); name {
		case "times":
			rule.times = a.count(name, it.Value())
		case "skip":
			rule.skip = a.count(name, it.Value())
		default:
			a.fail(mongoerr.BadValue, "fail point mode %s is not supported", name)
		}
	}
	return false
}

// failCommandData reads the data of failCommand.
func (a *arguments) failCommandData(rule *failRule, data bson.Raw) {
	for it := bsonkit.Iterate(data); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "failCommands":
			for _, element := range a.array(name, v) {
				rule.commands = append(rule.commands, a.text(name, element))
			}
		case "appName":
			rule.appName = a.text(name, v)
		case "closeConnection":
			rule.fault.closeConnection = a.boolean(name, v)
		case "errorCode":
			rule.fault.errorCode = mongoerr.Code(a.integer(name, v))
		case "errorLabels":
			rule.fault.hasLabels = true
			for _, element := range a.array(name, v) {
				rule.fault.labels = append(rule.fault.labels, a.text(name, element))
			}
		case "blockConnection":
			rule.block = a.boolean(name, v)
		case "blockTimeMS":
			rule.fault.block = time.Duration(a.count(name, v)) * time.Millisecond
		case "writeConcernError":
			rule.fault.writeConcernError = a.document(name, v)
		case "failInternalCommands", "threadName", "namespace", "extraInfo":
			// All clients of the sandbox are external ones.
		default:
			a.fail(mongoerr.BadValue, "failCommand with %s is not supported", name)
		}
	}
	if !rule.block {
		rule.fault.block = 0
	}
}
