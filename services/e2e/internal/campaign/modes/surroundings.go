package modes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// keyed is the name of the declaration of documents of another key.
func (m Mode) keyed() string {
	if m.Documents != nil {
		return "documents_keyed"
	}
	return "keyed"
}

// ReadModels are the declarations that the projectors keep, and what the witness judges
// them as. keeps says that events are forgiven later.
func (m Mode) ReadModels(keeps bool) (declared []string, judged witness.Projection) {
	declared, judged = []string{"orders", m.shadow()}, witness.Shadowed
	if m.Documents != nil {
		images := *m.Documents
		images.Hidden = m.hidden()
		declared[0], judged = "documents", judged.OfDocuments(witness.Documents{Images: images, Keeps: keeps || m.Halted})
	}
	if m.Keyed {
		declared, judged = append(declared, m.keyed()), judged.WithKeyed()
	}
	judged.Hidden = m.hidden()
	judged.OnError = strings.TrimPrefix(m.Projector["ON_ERROR"], "evaluate=")
	if m.InGo {
		judged = judged.WithSteps()
	}
	if m.Repairs {
		judged = judged.Repaired()
	}
	return declared, judged
}

// Projections writes into dir what the mode's projectors declare beyond files of the
// repository at root, and returns the setting that names all.
func (m Mode) Projections(root, dir string) (string, error) {
	declared, judged := m.ReadModels(false)
	paths := []string{cluster.Projections(root, declared...)}
	for _, view := range judged.Views {
		of := map[string]string{witness.Mended: "shadow", witness.Placed: "orders", witness.Buyers: "keyed"}[view]
		path, err := declaredAs(root, dir, of, view, "\n    version: 1")
		if err != nil {
			return "", err
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ","), nil
}

// declaredAs writes a declaration of the repository at root under another name.
func declaredAs(root, dir, file, name, more string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "services", "e2e", file+".yaml"))
	if err != nil {
		return "", fmt.Errorf("declare %s: %w", name, err)
	}
	path := filepath.Join(dir, name+".yaml")
	declared := named.ReplaceAllString(string(text), "- name: "+name+more+"\n    collection: "+name+"\n")
	return path, os.WriteFile(path, []byte(declared), 0o600)
}

// named is where a declaration says its name and collection.
var named = regexp.MustCompile(`- name: \w+\n    collection: \w+\n`)

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
	return Events(client, names)
}

// Events writes events into the collections of the source, and takes them out again.
func Events(client *mongo.Client, names cluster.Names) *source.Split {
	return &source.Split{Of: names.CollectionOf, To: func(collection string) *source.Writer {
		return source.NewWriter(client, names.SourceDatabase, collection)
	}}
}

// Names are names as the mode has them.
func (m Mode) Names(names cluster.Names) cluster.Names {
	if m.Publisher["SOURCE_COLLECTIONS"] != "" {
		names.SecondCollection = secondCollection
	}
	return names
}

// Window is how long a topic knows a message id again.
type Window time.Duration

// The window that a topic has by default, and the shortest there is.
const (
	UsualWindow    = Window(10 * time.Minute)
	ShortestWindow = Window(20 * time.Second)
)

// Mixed tells whether sends hold messages of several aggregates, which a partitioned topic
// that looks for duplicates refuses.
func (m Mode) Mixed() bool { return m.Publisher["BATCHING"] == "mixed" }

// Entities writes a namespace as the sandbox has it by default, with more
// subscriptions that take sessions, and a topic that takes what the mode's publishers send.
func (m Mode) Entities(dir string, names cluster.Names, window Window, more ...string) (string, error) {
	type object map[string]any
	subscription := func(name string, sessions bool) object {
		return object{"Name": name, "Properties": object{"RequiresSession": sessions, "LockDuration": "PT30S", "MaxDeliveryCount": 10}}
	}
	subscriptions := []object{subscription(names.Subscription, true), subscription(names.Observer, false)}
	for _, name := range more {
		subscriptions = append(subscriptions, subscription(name, true))
	}
	topic := object{"Name": names.Topic, "Subscriptions": subscriptions, "Properties": object{
		"EnablePartitioning": !m.Mixed(), "RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": fmt.Sprintf("PT%dS", int(time.Duration(window).Seconds())),
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
	return declaredAs(root, dir, m.shadow(), Beside, "")
}

// BesideDeployment makes a projector of another group like one of the cluster's, on a
// subscription, with the read model that a file declares.
func BesideDeployment(c *cluster.Cluster, file, subscription string) (*cluster.Node, error) {
	return c.Twin(c.Projectors[0], Beside, "READMODEL_GROUP="+Beside, "PROJECTIONS="+file, "SERVICEBUS_SUBSCRIPTION="+subscription)
}
