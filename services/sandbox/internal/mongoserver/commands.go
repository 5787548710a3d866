package mongoserver

// newCommands makes the table of all commands, by the names that clients may
// use.
func newCommands() map[string]*command {
	commands := map[string]*command{
		"abortTransaction":   {run: abortTransaction, admin: true, inTransaction: true},
		"aggregate":          {run: aggregate, inTransaction: true},
		"buildInfo":          {run: buildInfo},
		"collMod":            {run: collMod},
		"collStats":          {run: collStats},
		"commitTransaction":  {run: commitTransaction, admin: true, inTransaction: true},
		"configureFailPoint": {run: configureFailPoint, admin: true},
		"connectionStatus":   {run: connectionStatus},
		"count":              {run: count},
		"create":             {run: create, inTransaction: true},
		"createIndexes":      {run: createIndexes, inTransaction: true},
		"dbStats":            {run: dbStats},
		"delete":             {run: deleteDocuments, write: true, inTransaction: true},
		"distinct":           {run: distinct, inTransaction: true},
		"drop":               {run: drop},
		"dropDatabase":       {run: dropDatabase},
		"dropIndexes":        {run: dropIndexes},
		"endSessions":        {run: endSessions},
		"find":               {run: find, inTransaction: true},
		"findAndModify":      {run: findAndModify, write: true, inTransaction: true},
		"getCmdLineOpts":     {run: getCmdLineOpts, admin: true},
		"getLog":             {run: getLog, admin: true},
		"getMore":            {run: getMore, inTransaction: true},
		"getnonce":           {run: getNonce},
		"getParameter":       {run: getParameter, admin: true},
		"hello":              {run: hello},
		"hostInfo":           {run: hostInfo},
		"insert":             {run: insert, write: true, inTransaction: true},
		"isMaster":           {run: hello},
		"killAllSessions":    {run: killAllSessions},
		"killCursors":        {run: killCursors, inTransaction: true},
		"killSessions":       {run: endSessions},
		"listCollections":    {run: listCollections},
		"listDatabases":      {run: listDatabases, admin: true},
		"listIndexes":        {run: listIndexes},
		"ping":               {run: ping},
		"refreshSessions":    {run: refreshSessions},
		"renameCollection":   {run: renameCollection, admin: true},
		"replSetGetConfig":   {run: replSetGetConfig, admin: true},
		"replSetGetStatus":   {run: replSetGetStatus, admin: true},
		"serverStatus":       {run: serverStatus},
		"setParameter":       {run: setParameter, admin: true},
		"startSession":       {run: startSession},
		"update":             {run: update, write: true, inTransaction: true},
		"whatsmyuri":         {run: whatsMyURI},
	}
	for alias, name := range map[string]string{
		"buildinfo":     "buildInfo",
		"collstats":     "collStats",
		"dbstats":       "dbStats",
		"deleteIndexes": "dropIndexes",
		"findandmodify": "findAndModify",
		"ismaster":      "isMaster",
	} {
		commands[alias] = commands[name]
	}
	return commands
}
