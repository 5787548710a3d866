package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// AggregatePrivileges are those of aggregate: its first stage says what it is
// that is read, and other stages read, or write, other collections.
func AggregatePrivileges(c *Call) []access.Privilege {
	pipeline := ArrayOf(c.Body, "pipeline")
	needed := sourcePrivileges(c, pipeline)
	EachStage(pipeline, func(name string, stage bson.RawValue) {
		needed = append(needed, StagePrivileges(c, name, stage)...)
	})
	return needed
}

// sourcePrivileges are those of what a pipeline begins with.
func sourcePrivileges(c *Call, pipeline bson.Raw) []access.Privilege {
	on := func(r access.Resource, actions ...access.Action) []access.Privilege {
		return []access.Privilege{{Resource: r, Actions: actions}}
	}
	own := c.OnOwnCollection()[0].Resource
	it := bsonkit.Iterate(pipeline)
	if !it.Next() {
		return on(own, access.Find)
	}
	first, _ := it.Value().DocumentOK()
	name := StageName(first)
	switch name {
	case "$changeStream":
		options, _ := bsonkit.Get(first, name)
		if doc, ok := options.DocumentOK(); ok && IsTrue(doc, "allChangesForCluster") {
			own = access.Resource{}
		}
		return on(own, access.Find, access.ChangeStream)
	case "$listLocalSessions", "$listSessions":
		return on(access.Cluster(), access.ListSessions)
	case "$currentOp":
		options, _ := bsonkit.Get(first, name)
		if doc, ok := options.DocumentOK(); ok && !IsTrue(doc, "allUsers") {
			return nil
		}
		return on(access.Cluster(), "inprog")
	case "$collStats":
		return on(own, access.CollStats)
	case "$indexStats":
		return on(own, "indexStats")
	}
	return on(own, access.Find)
}

// StagePrivileges are those of a stage that names another collection, or holds
// pipelines that may.
func StagePrivileges(c *Call, name string, stage bson.RawValue) []access.Privilege {
	var needed []access.Privilege
	on := func(v bson.RawValue, actions ...access.Action) {
		collection, _ := v.StringValueOK()
		needed = append(needed, access.Privilege{Resource: access.Collection(c.DB, collection), Actions: actions})
	}
	if name == "$unionWith" || IsOutStage(name) {
		if stage.Type == bson.TypeString {
			on(stage, actionsOf(name)...)
			return needed
		}
	}
	doc, ok := stage.DocumentOK()
	if !ok {
		return needed
	}
	for it := bsonkit.Iterate(doc); it.Next(); {
		field, v := string(it.Key()), it.Value()
		switch {
		case field == "from" && (name == "$lookup" || name == "$graphLookup"), field == "coll" && name == "$unionWith":
			on(v, access.Find)
		case field == "into" && name == "$merge" && v.Type == bson.TypeString:
			on(v, actionsOf(name)...)
		case field == "into" && name == "$merge", name == "$out":
			// A collection of another database.
			needed = append(needed, access.Privilege{Resource: access.Resource{}, Actions: actionsOf(name)})
		case field == "pipeline" && (name == "$lookup" || name == "$unionWith"), name == "$facet":
			if v.Type == bson.TypeArray {
				EachStage(v.Value, func(name string, stage bson.RawValue) {
					needed = append(needed, StagePrivileges(c, name, stage)...)
				})
			}
		}
	}
	return needed
}

// actionsOf are those of a stage on the collection it names by a string.
func actionsOf(stage string) []access.Action {
	switch stage {
	case "$out":
		return []access.Action{access.Insert, access.Remove}
	case "$merge":
		return []access.Action{access.Insert, access.Update}
	}
	return []access.Action{access.Find}
}
