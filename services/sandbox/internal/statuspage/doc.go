// Package statuspage lets people look into the sandbox and try things: a page at
// /, and all that is on it as JSON. It serves
//
//	/status                        what the sandbox holds and does, in numbers
//	/documents/{db}/{collection}   documents by a filter; POST inserts one
//	/messages?entity=…             messages by peek; POST sends one
//	/sessions?entity=…             sessions with their holders
//	/faults, /world                given by others
//	/healthz                       for whoever starts it
//
// It knows neither side of the sandbox: Database and Namespace are what it asks
// of them.
//
// Looking changes nothing and uses nothing up. These hold for every request:
//
//   - The host it asks for is one that nobody can register: a page of the Web
//     whose name is pointed at this machine gets no answer.
//   - What a browser sends for a page of another origin changes nothing.
//   - Where a side asks its clients who they are, so do its data here, and so do
//     faults and worlds.
//   - Its time and its size are bounded, and so are those of the answer.
//
// The page puts data of users nowhere but into the text of elements, and its
// content security policy lets it run no script but its own.
package statuspage
