#!/bin/sh
# Installs the bundle in this folder for one person, without root, and starts it.
set -e
here=$(cd "$(dirname "$0")" && pwd)
app=$HOME/.local/opt/hgviz
data=${XDG_DATA_HOME:-$HOME/.local/share}

mkdir -p "$HOME/.local/opt" "$HOME/.local/bin" "$data"
rm -rf "$app.old"
[ ! -e "$app" ] || mv "$app" "$app.old"
mv "$here" "$app"
rm -rf "$app.old"
cp -R "$app/share/." "$data/"
sed -i "s|^Exec=hgviz|Exec=\"$app/hgviz\"|" "$data/applications/hgviz.desktop"
ln -sf "$app/hgviz" "$HOME/.local/bin/hgviz"
! command -v update-mime-database >/dev/null || update-mime-database "$data/mime" || true

echo "hgviz is in $app and in the menu; 'hgviz' starts it where ~/.local/bin is in the PATH."
[ -z "$DISPLAY$WAYLAND_DISPLAY" ] || exec "$app/hgviz"
