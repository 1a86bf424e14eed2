module github.com/emer/empi

go 1.25.0

require (
	github.com/emer/etable v1.1.21
	github.com/goccl/goccl v0.3.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/BurntSushi/freetype-go v0.0.0-20160129220410-b763ddbfe298 // indirect
	github.com/BurntSushi/graphics-go v0.0.0-20160129215708-b43f31a4a966 // indirect
	github.com/BurntSushi/xgb v0.0.0-20210121224620-deaf085860bc // indirect
	github.com/BurntSushi/xgbutil v0.0.0-20190907113008-ad855c713046 // indirect
	github.com/akutz/sortfold v0.2.1 // indirect
	github.com/alecthomas/chroma/v2 v2.7.0 // indirect
	github.com/anthonynsimon/bild v0.13.0 // indirect
	github.com/apache/arrow/go/arrow v0.0.0-20211112161151-bc219186db40 // indirect
	github.com/aymerick/douceur v0.2.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dlclark/regexp2 v1.8.1 // indirect
	github.com/fatih/camelcase v1.0.0 // indirect
	github.com/gabriel-vasile/mimetype v1.4.2 // indirect
	github.com/go-gl/glfw/v3.3/glfw v0.0.0-20221017161538-93cebf72946b // indirect
	github.com/go-gl/mathgl v1.0.0 // indirect
	github.com/goki/freetype v1.0.1 // indirect
	github.com/goki/gi v1.3.17 // indirect
	github.com/goki/ki v1.1.11 // indirect
	github.com/goki/kigen v1.0.2 // indirect
	github.com/goki/mat32 v1.0.15 // indirect
	github.com/goki/pi v1.0.27 // indirect
	github.com/goki/prof v1.0.0 // indirect
	github.com/goki/vgpu v1.0.22 // indirect
	github.com/goki/vulkan v1.0.6 // indirect
	github.com/gorilla/css v1.0.0 // indirect
	github.com/h2non/filetype v1.1.3 // indirect
	github.com/iancoleman/strcase v0.2.0 // indirect
	github.com/jinzhu/copier v0.3.5 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/srwiley/rasterx v0.0.0-20220730225603-2ab79fcdd4ef // indirect
	github.com/srwiley/scanx v0.0.0-20190309010443-e94503791388 // indirect
	golang.org/x/exp v0.0.0-20230321023759-10a507213a29 // indirect
	golang.org/x/image v0.25.0 // indirect
	golang.org/x/mod v0.27.0 // indirect
	golang.org/x/net v0.45.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	golang.org/x/text v0.29.0 // indirect
	golang.org/x/tools v0.36.0 // indirect
	golang.org/x/xerrors v0.0.0-20220907171357-04be3eba64a2 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/goccl/goccl => ../../..
