package management

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

const (
	atomNamespace     = "http://www.w3.org/2005/Atom"
	serviceNamespace  = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	countsNamespace   = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
	instanceNamespace = "http://www.w3.org/2001/XMLSchema-instance"
	schemaNamespace   = "http://www.w3.org/2001/XMLSchema"
)

// entry is one entity. Its description is a struct named as its element.
type entry struct {
	XMLName   xml.Name `xml:"entry"`
	Namespace string   `xml:"xmlns,attr"`
	ID        string   `xml:"id"`
	Title     title    `xml:"title"`
	Published string   `xml:"published,omitempty"`
	Updated   string   `xml:"updated,omitempty"`
	Link      link     `xml:"link"`
	Content   content  `xml:"content"`
}

type title struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	HRef string `xml:"href,attr"`
}

type content struct {
	Type        string `xml:"type,attr"`
	Description any
}

type feed struct {
	XMLName   xml.Name `xml:"feed"`
	Namespace string   `xml:"xmlns,attr"`
	ID        string   `xml:"id"`
	Title     title    `xml:"title"`
	Updated   string   `xml:"updated"`
	Entries   []entry
}

// namespaces are the attributes of every description.
type namespaces struct {
	Service  string `xml:"xmlns,attr"`
	Instance string `xml:"xmlns:i,attr"`
}

func newNamespaces() namespaces { return namespaces{serviceNamespace, instanceNamespace} }

// newEntry wraps a description. path is the entity's below the namespace.
func newEntry(r *http.Request, path, name string, created, updated time.Time, description any) entry {
	address := "https://" + r.Host + "/" + path
	return entry{
		Namespace: atomNamespace, ID: address, Title: title{"text", name},
		Published: timestamp(created), Updated: timestamp(updated), Link: link{"self", address},
		Content: content{"application/xml", description},
	}
}

// timestamp of the zero time is what the service says of an entity that was
// never accessed.
func timestamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339Nano)
}

// newFeed wraps the page of entries that the request asks for.
func newFeed(r *http.Request, name string, entries []entry) (any, error) {
	skip, err := paging(r, "$skip", 0)
	if err != nil {
		return nil, err
	}
	top, err := paging(r, "$top", len(entries))
	if err != nil {
		return nil, err
	}
	entries = entries[min(skip, len(entries)):]
	return feed{
		Namespace: atomNamespace, ID: "https://" + r.Host + r.URL.Path, Title: title{"text", name},
		Updated: timestamp(time.Now()), Entries: entries[:min(top, len(entries))],
	}, nil
}

func paging(r *http.Request, name string, fallback int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest("%s=%s is not a number from 0 on.", name, text)
	}
	return n, nil
}

// missing is the service's answer for a queue or topic that is not there.
func missing(r *http.Request) (any, error) {
	return feed{
		Namespace: atomNamespace, ID: "https://" + r.Host + r.URL.Path,
		Title: title{"text", "Publicly Listed Services"}, Updated: timestamp(time.Now()),
	}, nil
}

// countDetails are written with the prefix that the service uses.
type countDetails struct {
	Namespace          string `xml:"xmlns:d2p1,attr"`
	Active             int64  `xml:"d2p1:ActiveMessageCount"`
	DeadLetter         int64  `xml:"d2p1:DeadLetterMessageCount"`
	Scheduled          int64  `xml:"d2p1:ScheduledMessageCount"`
	Transfer           int64  `xml:"d2p1:TransferMessageCount"`
	TransferDeadLetter int64  `xml:"d2p1:TransferDeadLetterMessageCount"`
}

// newCountDetails counts deferred messages as active ones, as the service does.
func newCountDetails(c entity.Counts) countDetails {
	return countDetails{
		Namespace: countsNamespace, Active: c.Active + c.Deferred, DeadLetter: c.DeadLetter, Scheduled: c.Scheduled,
		Transfer: c.Transfer, TransferDeadLetter: c.TransferDeadLetter,
	}
}

func total(c entity.Counts) int64 {
	return c.Active + c.Deferred + c.DeadLetter + c.Scheduled + c.Transfer + c.TransferDeadLetter
}

type namespaceInfo struct {
	XMLName xml.Name `xml:"NamespaceInfo"`
	namespaces
	CreatedTime   string
	MessagingSKU  string
	ModifiedTime  string
	Name          string
	NamespaceType string
}

// namespaceInfo says Standard: partitioned entities, 256 KiB a message.
func (h *handler) namespaceInfo(r *http.Request) (any, error) {
	name, started := h.broker.Namespace()
	return newEntry(r, "$namespaceinfo", name, started, started, namespaceInfo{
		namespaces: newNamespaces(), CreatedTime: timestamp(started), MessagingSKU: "Standard",
		ModifiedTime: timestamp(started), Name: name, NamespaceType: "Messaging",
	}), nil
}
