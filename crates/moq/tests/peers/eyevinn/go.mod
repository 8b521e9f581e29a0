module moqt-eyevinn

go 1.25.0

require (
	github.com/Eyevinn/moqtransport v0.9.0
	github.com/quic-go/quic-go v0.60.0
)

require (
	github.com/mengelbart/qlog v0.1.0 // indirect
	golang.org/x/crypto v0.51.0 // indirect
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
)
