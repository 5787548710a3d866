package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
)

// aggregatePrivileges are those of aggregate: its first stage says what it is
// that is read, and other stages read, or write, other collections.
func aggregatePrivileges(c *call) []access.Privilege {
	pipeline := arrayOf(c.body, "pipeline")
	needed := c.sourcePrivileges(pipeline)
	eachStage(pipeline, func(name string, stage bson.RawValue) {
		needed = append(needed, c.stagePrivileges(name, stage)...)
	})
	return needed
}

// sourcePrivileges are those of what a pipeline begins with.
func (c *call) sourcePrivileges(pipeline bson.Raw) []access.Privilege {
	on := func(r access.Resource, actions ...access.Action) []access.Privilege {
		return []access.Privilege{{Resource: r, Actions: actions}}
	}
	own := c.onOwnCollection()[0].Resource
	it := bsonkit.Iterate(pipeline)
	if !it.Next() {
		return on(own, access.Find)
	}
	first, _ := it.Value().DocumentOK()
	name := stageName(first)
	switch name {
	case "$changeStream":
		options, _ := bsonkit.Get(first, name)
		if doc, ok := options.DocumentOK(); ok && isTrue(doc, "allChangesForCluster") {
			own = access.Resource{}
		}
		return on(own, access.Find, access.ChangeStream)
	case "$listLocalSessions", "$listSessions":
		return on(access.Cluster(), access.ListSessions)
	case "$currentOp":
		return on(access.Cluster(), "inprog")
	case "$collStats":
		return on(own, access.CollStats)
	case "$indexStats":
		return on(own, "indexStats")
	}
	return on(own, access.Find)
}

// stagePrivileges are those of a stage that names another collection, or holds
// pipelines that may.
func (c *call) stagePrivileges(name string, stage bson.RawValue) []access.Privilege {
	var needed []access.Privilege
	on := func(v bson.RawValue, actions ...access.Action) {
		collection, _ := v.StringValueOK()
		needed = append(needed, access.Privilege{Resource: access.Collection(c.db, collection), Actions: actions})
	}
	if name == "$unionWith" || isOutStage(name) {
		if stage.Type == bson.TypeString {
			on(stage, c.actionsOf(name)...)
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
			on(v, c.actionsOf(name)...)
		case field == "into" && name == "$merge", name == "$out":
			// A collection of another database.
			needed = append(needed, access.Privilege{Resource: access.Resource{}, Actions: c.actionsOf(name)})
		case field == "pipeline" && (name == "$lookup" || name == "$unionWith"), name == "$facet":
			if v.Type == bson.TypeArray {
				eachStage(v.Value, func(name string, stage bson.RawValue) {
					needed = append(needed, c.stagePrivileges(name, stage)...)
				})
			}
		}
	}
	return needed
}

// actionsOf are those of a stage on the collection it names by a string.
func (c *call) actionsOf(stage string) []access.Action {
	switch stage {
	case "$out":
		return []access.Action{access.Insert, access.Remove}
	case "$merge":
		return []access.Action{access.Insert, access.Update}
	}
	return []access.Action{access.Find}
}

// eachStage visits every field of every stage.
func eachStage(pipeline bson.Raw, visit func(name string, stage bson.RawValue)) {
	for it := bsonkit.Iterate(pipeline); it.Next(); {
		stage, _ := it.Value().DocumentOK()
		for fields := bsonkit.Iterate(stage); fields.Next(); {
			visit(string(fields.Key()), fields.Value())
		}
	}
}
