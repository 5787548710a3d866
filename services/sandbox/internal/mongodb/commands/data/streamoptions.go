package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// parseStreamOptions reads the $changeStream stage of an aggregate.
func parseStreamOptions(version serverversion.Version, g aggregation) (engine.StreamOptions, error) {
	o := engine.StreamOptions{NS: g.ns}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var resumeAfter, startAfter bson.Raw
	wholeCluster, hasStart := false, false
	stage, _ := bsonkit.Get(g.stages[0], "$changeStream")
	if stage.Type != bson.TypeEmbeddedDocument {
		a.Fail(50808, "$changeStream stage expects a document as argument.")
	}
	for it := bsonkit.Iterate(a.Document("$changeStream", stage)); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "fullDocument":
			fullDocument(&a, &o, name, v)
		case "fullDocumentBeforeChange":
			o.PreImage = preImage(&a, v)
		case "resumeAfter":
			resumeAfter = a.Document(name, v)
		case "startAfter":
			startAfter = a.Document(name, v)
		case "startAtOperationTime":
			t, i, ok := v.TimestampOK()
			if !ok {
				a.WrongType(name, v, "timestamp")
			}
			o.StartAt, hasStart = oplog.NewTimestamp(t, i), true
		case "allChangesForCluster":
			wholeCluster = a.Boolean(name, v)
		case "showMigrationEvents", "allowToRunOnConfigDB":
			a.Boolean(name, v)
		case "showExpandedEvents":
			if !version.Has(6) {
				a.Unknown(40415, "$changeStream", name)
			}
			o.Expanded = a.Boolean(name, v)
		default:
			a.Unknown(40415, "$changeStream", name)
		}
	}
	resumePoint(&a, &o, resumeAfter, startAfter, hasStart)
	streamScope(&a, &o, wholeCluster)
	return o, a.Err
}

// streamOptions are those of a version.
func streamOptions(v serverversion.Version, g aggregation) (engine.StreamOptions, error) {
	o, err := parseStreamOptions(v, g)
	if err == nil && o.PostImage != engine.NoImage && !v.Has(6) {
		err = mongoerr.New(40575, "post-images are not supported by version %s", v)
	}
	o.LateLoss, o.EarlyImage = !v.Has(5), !v.Has(6)
	o.TruncatedArrays, o.WallTime, o.DisambiguatedPaths = v.Has(5), v.Has(6), o.Expanded && v.Has(7)
	return o, err
}

func fullDocument(a *command.Arguments, o *engine.StreamOptions, name string, v bson.RawValue) {
	switch mode := a.Text(name, v); mode {
	case "", "default":
	case "updateLookup":
		o.UpdateLookup = true
	case "whenAvailable":
		o.PostImage = engine.ImageWhenAvailable
	case "required":
		o.PostImage = engine.ImageRequired
	default:
		a.Fail(40575, "unrecognized value for the 'fullDocument' option to the $changeStream stage. "+
			"Expected \"default\", \"updateLookup\", \"whenAvailable\" or \"required\", got \"%s\"", mode)
	}
}

func preImage(a *command.Arguments, v bson.RawValue) engine.Image {
	switch a.OneOf("$changeStream.fullDocumentBeforeChange", v, "off", "whenAvailable", "required") {
	case "whenAvailable":
		return engine.ImageWhenAvailable
	case "required":
		return engine.ImageRequired
	}
	return engine.NoImage
}

// resumePoint takes the one place where the stream is to begin.
func resumePoint(a *command.Arguments, o *engine.StreamOptions, resumeAfter, startAfter bson.Raw, hasStart bool) {
	switch {
	case resumeAfter != nil && startAfter != nil:
		a.Fail(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage.")
	case hasStart && (resumeAfter != nil || startAfter != nil):
		a.Fail(40674, "Only one type of resume option is allowed, but multiple were found.")
	}
	token := resumeAfter
	if token == nil {
		token = startAfter
	}
	if token == nil || a.Err != nil {
		return
	}
	resume, err := oplog.ParseResumeToken(token)
	if err != nil {
		a.Err = err
		return
	}
	if resume.FromInvalidate && resumeAfter != nil {
		a.Fail(mongoerr.InvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
	}
	o.Resume = &resume
}

// streamScope turns the namespace of the aggregate into that of the stream.
func streamScope(a *command.Arguments, o *engine.StreamOptions, wholeCluster bool) {
	onAdmin := o.NS.DB == "admin" && o.NS.Collection == ""
	switch {
	case wholeCluster && !onAdmin:
		a.Fail(mongoerr.InvalidOptions,
			"A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", o.NS)
	case wholeCluster:
		o.NS = oplog.Namespace{}
	case strings.HasPrefix(o.NS.Collection, "system."):
		a.Fail(mongoerr.InvalidNamespace, "$changeStream may not be opened on the internal %s collection", o.NS)
	case o.NS.DB == "admin" || o.NS.DB == "local" || o.NS.DB == "config":
		a.Fail(mongoerr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", o.NS.DB)
	}
}
