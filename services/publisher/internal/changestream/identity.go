package changestream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/checkpoint"
)

// Identify asks what tells the source from another. What the role may not ask,
// or the server does not have, is not known; any other error is returned.
func (s Source) Identify(ctx context.Context) (checkpoint.Origin, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client := s.Database.Client()
	reply, err := hello(ctx, client)
	if err != nil {
		return checkpoint.Origin{}, err
	}
	origin := checkpoint.Origin{Collections: map[string]string{}}
	origin.Set, _ = reply.Lookup("setName").StringValueOK()
	origin.Router = isRouter(reply)
	if origin.Cluster, err = clusterID(ctx, client, origin.Set != ""); err != nil {
		return origin, err
	}
	which := bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: s.Collections}}}}
	if origin.Whole = len(s.Collections) == 0; origin.Whole {
		which = bson.D{}
	}
	found, err := s.Database.ListCollectionSpecifications(ctx, which)
	if unanswered(err) {
		return origin, fmt.Errorf("list the collections of %s: %w", s, err)
	}
	slices.SortFunc(found, func(a, b mongo.CollectionSpecification) int { return cmp.Compare(a.Name, b.Name) })
	for _, one := range found[:min(len(found), max(len(s.Collections), manyCollections))] {
		if one.UUID != nil {
			origin.Collections[one.Name] = fmt.Sprintf("%x", one.UUID.Data)
		}
	}
	return origin, nil
}

// manyCollections is how many collections of a whole database are kept to know it
// by.
const manyCollections = 100

// Exists reports whether a collection is there; known is false where the role may
// not see that.
func (s Source) Exists(ctx context.Context, collection string) (exists, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	found, err := s.Database.ListCollectionNames(ctx, bson.D{{Key: "name", Value: collection}})
	if unanswered(err) {
		return false, false, fmt.Errorf("look for the collection %q: %w", collection, err)
	}
	return len(found) > 0, err == nil, nil
}

// clusterID is the replica set's id, or that of the sharded cluster.
func clusterID(ctx context.Context, client *mongo.Client, replicaSet bool) (string, error) {
	var raw bson.Raw
	var err error
	path := []string{"config", "settings", "replicaSetId"}
	if replicaSet {
		raw, err = client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}).Raw()
	} else {
		raw, err = client.Database("config").Collection("version").FindOne(ctx, bson.D{}).Raw()
		path = []string{"clusterId"}
	}
	if unanswered(err) {
		return "", fmt.Errorf("ask for the id of the cluster: %w", err)
	}
	id, _ := raw.Lookup(path...).ObjectIDOK()
	if id.IsZero() {
		return "", nil
	}
	return id.Hex(), nil
}

// withheld are the server's codes for what it does not let this user see, or
// does not have.
var withheld = []int{
	13,   // Unauthorized
	59,   // CommandNotFound
	76,   // NoReplicationEnabled
	8000, // what Atlas answers to commands of its own
}

// unanswered reports an error that does not say that something is not known.
func unanswered(err error) bool {
	if err == nil || errors.Is(err, mongo.ErrNoDocuments) {
		return false
	}
	server, ok := errors.AsType[mongo.ServerError](err)
	return !ok || !slices.ContainsFunc(withheld, server.HasErrorCode)
}
