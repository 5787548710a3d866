package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// parseStreamOptions reads the $changeStream stage of an aggregate.
func parseStreamOptions(g aggregation) (engine.StreamOptions, error) {
	o := engine.StreamOptions{NS: g.ns}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var resumeAfter, startAfter bson.Raw
	wholeCluster, hasStart := false, false
	stage, _ := bsonkit.Get(g.stages[0], "$changeStream")
	for it := bsonkit.Iterate(a.document("$changeStream", stage)); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "fullDocument":
			a.fullDocument(&o, name, v)
		case "fullDocumentBeforeChange":
			o.PreImage = a.preImage(v)
		case "resumeAfter":
			resumeAfter = a.document(name, v)
		case "startAfter":
			startAfter = a.document(name, v)
		case "startAtOperationTime":
			t, i, ok := v.TimestampOK()
			if !ok {
				a.wrongType(name, v, "timestamp")
			}
			o.StartAt, hasStart = engine.NewTimestamp(t, i), true
		case "allChangesForCluster":
			wholeCluster = a.boolean(name, v)
		case "showMigrationEvents", "allowToRunOnConfigDB":
			a.boolean(name, v)
		default:
			a.unknown(40415, "$changeStream", name)
		}
	}
	a.resumePoint(&o, resumeAfter, startAfter, hasStart)
	a.streamScope(&o, wholeCluster)
	return o, a.err
}

func (a *arguments) fullDocument(o *engine.StreamOptions, name string, v bson.RawValue) {
	switch mode := a.text(name, v); mode {
	case "", "default":
	case "updateLookup":
		o.UpdateLookup = true
	case "whenAvailable":
		o.PostImage = engine.ImageWhenAvailable
	case "required":
		o.PostImage = engine.ImageRequired
	default:
		a.fail(40575, "unrecognized value for the 'fullDocument' option to the $changeStream stage. "+
			"Expected \"default\", \"updateLookup\", \"whenAvailable\" or \"required\", got \"%s\"", mode)
	}
}

func (a *arguments) preImage(v bson.RawValue) engine.Image {
	switch a.oneOf("$changeStream.fullDocumentBeforeChange", v, "off", "whenAvailable", "required") {
	case "whenAvailable":
		return engine.ImageWhenAvailable
	case "required":
		return engine.ImageRequired
	}
	return engine.NoImage
}

// resumePoint takes the one place where the stream is to begin.
func (a *arguments) resumePoint(o *engine.StreamOptions, resumeAfter, startAfter bson.Raw, hasStart bool) {
	switch {
	case resumeAfter != nil && startAfter != nil:
		a.fail(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage.")
	case hasStart && (resumeAfter != nil || startAfter != nil):
		a.fail(40674, "Only one type of resume option is allowed, but multiple were found.")
	}
	token := resumeAfter
	if token == nil {
		token = startAfter
	}
	if token == nil || a.err != nil {
		return
	}
	resume, err := engine.ParseResumeToken(token)
	if err != nil {
		a.err = err
		return
	}
	if resume.FromInvalidate && resumeAfter != nil {
		a.fail(mongoerr.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
	}
	o.Resume = &resume
}

// streamScope turns the namespace of the aggregate into that of the stream.
func (a *arguments) streamScope(o *engine.StreamOptions, wholeCluster bool) {
	onAdmin := o.NS.DB == "admin" && o.NS.Collection == ""
	switch {
	case wholeCluster && !onAdmin:
		a.fail(mongoerr.InvalidOptions,
			"A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", o.NS)
	case wholeCluster:
		o.NS = engine.Namespace{}
	case o.NS.DB == "admin" || o.NS.DB == "local" || o.NS.DB == "config":
		a.fail(mongoerr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", o.NS.DB)
	}
}
