package access

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Resource is what an action is on
// (https://www.mongodb.com/docs/manual/reference/resource-document/).
type Resource struct {
	// Cluster and Any exclude everything else.
	Cluster bool
	Any     bool
	// DB and Collection: an empty one in a grant means any, the collections of
	// the server itself excepted. In a question an empty Collection is the
	// database itself, and an empty DB all of them.
	DB, Collection string
}

// Cluster is the resource of the whole deployment.
func Cluster() Resource { return Resource{Cluster: true} }

// Database is the resource of a database, or of all its collections.
func Database(name string) Resource { return Resource{DB: name} }

// Collection is the resource of one collection.
func Collection(db, name string) Resource { return Resource{DB: db, Collection: name} }

// grantedBy are the grants that cover a resource.
func (r Resource) grantedBy() []Resource {
	switch {
	case r.Cluster:
		return []Resource{r, {Any: true}}
	case strings.HasPrefix(r.Collection, "system."):
		return []Resource{r, {Collection: r.Collection}, {Any: true}}
	}
	return []Resource{r, {DB: r.DB}, {Collection: r.Collection}, {}, {Any: true}}
}

// resourceDocument is a resource as commands and role documents have it.
type resourceDocument struct {
	Cluster    bool    `bson:"cluster,omitempty" json:"cluster"`
	Any        bool    `bson:"anyResource,omitempty" json:"anyResource"`
	DB         *string `bson:"db,omitempty" json:"db"`
	Collection *string `bson:"collection,omitempty" json:"collection"`
}

// MarshalBSON implements bson.Marshaler.
func (r Resource) MarshalBSON() ([]byte, error) {
	if r.Cluster || r.Any {
		return bson.Marshal(resourceDocument{Cluster: r.Cluster, Any: r.Any})
	}
	return bson.Marshal(resourceDocument{DB: &r.DB, Collection: &r.Collection})
}

// UnmarshalBSON implements bson.Unmarshaler.
func (r *Resource) UnmarshalBSON(doc []byte) error {
	var d resourceDocument
	err := bson.Unmarshal(doc, &d)
	if err != nil {
		return err
	}
	*r, err = d.resource()
	return err
}

func (d resourceDocument) resource() (Resource, error) {
	switch {
	case (d.Cluster || d.Any) && (d.DB != nil || d.Collection != nil || d.Cluster == d.Any):
		return Resource{}, errors.New("resource of the cluster, or any resource, cannot have other fields")
	case d.Cluster || d.Any:
		return Resource{Cluster: d.Cluster, Any: d.Any}, nil
	case d.DB == nil || d.Collection == nil:
		return Resource{}, errors.New("resource must have exactly db and collection set, or have only cluster set")
	}
	return Resource{DB: *d.DB, Collection: *d.Collection}, nil
}
