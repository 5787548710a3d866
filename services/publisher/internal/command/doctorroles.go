package command

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/doctor"
)

// roles compares what the publisher's users may do with docs/security.md.
func (e *examination) roles(ctx context.Context, source *mongo.Client) error {
	c := e.config
	onSource := SourceNeed(&c)
	onState := doctor.Need{
		Database: c.StateDatabase, Actions: []string{"find", "insert", "update"},
		Optional: []string{"changeStream", "createIndex", "createCollection"},
	}
	if c.StateMongoURI == c.MongoURI {
		e.role(ctx, source, onSource, onState)
		return nil
	}
	state, err := config.ConnectMongo(c.StateMongoURI)
	if err != nil {
		return fmt.Errorf("prepare the state: %w", err)
	}
	defer func() { _ = state.Disconnect(context.WithoutCancel(ctx)) }() // the process ends anyway
	e.role(ctx, source, onSource)
	e.role(ctx, state, onState)
	return nil
}

// SourceNeed is what the stream needs of the source. That of several collections
// is the stream of their database.
func SourceNeed(c *config.Config) doctor.Need {
	need := doctor.Need{Database: c.SourceDatabase, Actions: []string{"find", "changeStream"}}
	if names := c.Collections(); len(names) == 1 {
		need.Collections = names
	}
	return need
}

// role judges the user of a client. Where nobody has to be one there is nothing
// to judge, and that a database does not answer is found elsewhere.
func (e *examination) role(ctx context.Context, client *mongo.Client, needs ...doctor.Need) {
	var status struct {
		AuthInfo struct {
			Users []struct {
				User string `bson:"user"`
			} `bson:"authenticatedUsers"`
			Privileges []doctor.Privilege `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}).Decode(&status)
	if err != nil || len(status.AuthInfo.Users) == 0 {
		return
	}
	e.found = append(e.found, doctor.JudgeRole(doctor.Role{
		User: status.AuthInfo.Users[0].User, Privileges: status.AuthInfo.Privileges, Needs: needs,
	})...)
}
