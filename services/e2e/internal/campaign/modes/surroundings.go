package modes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/source"
)

// Beside is the other group, its collection, and its subscription.
const Beside = "beside"

// shadow is the name of the declaration that counts each event.
func (m Mode) shadow() string {
	if m.Documents != nil {
		return "documents_shadow"
	}
	return "shadow"
}

// ReadModels are the declarations that the projectors keep, and what the witness judges
// them as. keeps says that events are forgiven later.
func (m Mode) ReadModels(keeps bool) (declared []string, judged witness.Projection) {
	declared, judged = []string{"orders", m.shadow()}, witness.Shadowed
	if m.Documents != nil {
		declared[0], judged = "documents", judged.OfDocuments(witness.Documents{Images: *m.Documents, Keeps: keeps})
	}
	if m.Keyed {
		declared, judged = append(declared, "keyed"), judged.WithKeyed()
	}
	if m.InGo {
		judged = judged.WithSteps()
	}
	return declared, judged
}

// PrepareSource makes the source what the mode needs; before the witness looks at it.
func (m Mode) PrepareSource(ctx context.Context, e cluster.Endpoints, names cluster.Names) error {
	if m.Documents == nil {
		return nil
	}
	return source.KeepImages(ctx, e.MongoURI, names.SourceDatabase, names.SourceCollection)
}

// Writer writes events as the mode has them.
func (m Mode) Writer(client *mongo.Client, names cluster.Names) load.Inserter {
	if m.Documents != nil {
		return source.NewDocumentWriter(client, names.SourceDatabase, names.SourceCollection)
	}
	return source.NewWriter(client, names.SourceDatabase, names.SourceCollection)
}

// Window is how long a topic knows a message id again.
type Window time.Duration

// The window that a topic has by default, and the shortest there is.
const (
	UsualWindow    = Window(10 * time.Minute)
	ShortestWindow = Window(20 * time.Second)
)

// Entities writes a namespace as the sandbox has it by default, with more
// subscriptions that take sessions.
func Entities(dir string, names cluster.Names, window Window, more ...string) (string, error) {
	type object map[string]any
	subscription := func(name string, sessions bool) object {
		return object{"Name": name, "Properties": object{"RequiresSession": sessions, "LockDuration": "PT30S", "MaxDeliveryCount": 10}}
	}
	subscriptions := []object{subscription(names.Subscription, true), subscription(names.Observer, false)}
	for _, name := range more {
		subscriptions = append(subscriptions, subscription(name, true))
	}
	topic := object{"Name": names.Topic, "Subscriptions": subscriptions, "Properties": object{
		"EnablePartitioning": true, "RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": fmt.Sprintf("PT%dS", int(time.Duration(window).Seconds())),
	}}
	text, err := json.Marshal(object{"UserConfig": object{"Namespaces": []object{{"Name": "sandbox", "Topics": []object{topic}}}}})
	if err != nil {
		return "", fmt.Errorf("write the namespace: %w", err)
	}
	path := filepath.Join(dir, "entities.json")
	return path, os.WriteFile(path, text, 0o600)
}

// BesideProjection writes the declaration of the other group's read model: the shadow
// under another name.
func (m Mode) BesideProjection(root, dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "services", "e2e", m.shadow()+".yaml"))
	if err != nil {
		return "", fmt.Errorf("declare the second group's read model: %w", err)
	}
	path := filepath.Join(dir, "beside.yaml")
	declared := strings.NewReplacer("name: shadow", "name: "+Beside, "collection: shadow", "collection: "+Beside).Replace(string(text))
	return path, os.WriteFile(path, []byte(declared), 0o600)
}

// BesideDeployment makes a projector of another group like one of the cluster's, on a
// subscription, with the read model that a file declares.
func BesideDeployment(c *cluster.Cluster, file, subscription string) (*cluster.Node, error) {
	return c.Twin(c.Projectors[0], Beside, "READMODEL_GROUP="+Beside, "PROJECTIONS="+file, "SERVICEBUS_SUBSCRIPTION="+subscription)
}
